set $dir=/tmp
eventgen rate=10
define randvar name=$write, type=tabular, min=1k, round=1k, randtable =
{{ 0,   1k,    7k},
 {50,   9k,   15k},
 {50, 129k,  135k}
}
set $index = randvar(type=gamma, min=0, gamma=100)
set $all=10 * 20
define file name=log,path=$dir,size=1m,prealloc,reuse
define fileset name=set,path=$dir,size=16k,entries=$all,dirwidth=20,prealloc=60

define flowop name=change, $on, $times
{
  flowop openfile name=open,filesetname=$on,indexed=$index,fd=6
  flowop appendfile name=append,iosize=$write,fd=6,iters=$times
  flowop closefile name=close,fd=6
}

define process name=client,instances=2
{
  thread name=user,memsize=10m,instances=3
  {
    flowop change name=changes, iters=3, $on=set, $times=2
    flowop read name=randomly,filename=log,iosize=8k,random,workingset=64k
    flowop sempost name=post,value=1,target=written,blocking
    flowop eventlimit name=rate
  }
  thread name=writer
  {
    flowop semblock name=written,value=10,highwater=100
    flowop write name=write,filesetname=set,iosize=4k,opennext,random
    flowop hog name=think,value=100
    flowop delay name=sleep,value=1
  }
}
psrun -10 20
quit
