# A mail servmr.
set $dir=/tmp
set $nfiles=100
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=4
set mode quit firstdone

define fileset name=spool,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=80

define process name=server,instances=0
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=remove,filesetname=spool
    flowop createfile name=make,filesetname=spool,fd=2
    flowop closefile name=close2,fd=2
    flowop statfile name=look,filesetname=spool
    flowop opslimit name=limit
    flowop finishoncount name=finish,value=5001
  }
}
echo "loaded"
run 60
